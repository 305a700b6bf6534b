"""Limits on what candidates write: beyond every honest use, and small enough to be no burden."""

MAX_SOURCE_BYTES = 4 << 20  # a million characters of any alphabet; the longest kernels in use have a tenth
MAX_HEADER_BYTES = 4 << 20  # whole libraries come as one header
MAX_INCLUDED_FILES = 500  # that a source takes in
MAX_INCLUDED_FOLDERS = 100  # in which these lie, with those around them: each private copy of the files has them anew
MAX_INCLUDED_BYTES = 16 << 20  # of these together
MAX_LOOKUPS = 100_000  # of names that a source and what it includes may include, each in every place
MAX_BUILT_BYTES = 512 << 20  # of one built library; PyTorch's own largest is for seven architectures and has 1 GB
MAX_BUILT_TOGETHER_BYTES = 2 << 30  # of all that one candidate has built
MAX_LIBRARY_BYTES = 2 << 30  # of a prebuilt library, as large as linkers make them
MAX_NAMED_BYTES = 2 << 30  # of all files that a solution names: their digests are taken four times, 1 GB in a second
MAX_ARCHIVE_BYTES = 256 << 20  # of others' kernels, the file as well as all sources together; CUDA-L1's has 1.6 MB
MAX_JSON_BYTES = 64 << 20  # of a file that is one JSON text; it may take 30 times as much memory
MAX_ENTRIES = 200_000  # in a directory of solutions: 250 problems with 100 samples each, and as many helpers
MAX_PATH_CHARACTERS = 16 << 20  # of all of them together, below it: to list them takes 50 times as much memory
MAX_NAME_CHARACTERS = 500  # of a solution's path in its directory, as it is told: a record has it with each finding
MAX_SAMPLE = 999_999_999  # fits all formats that results are written in
MAX_FINDINGS = 200  # of one solution: a reviewer reads no more
MAX_FINDING_CHARACTERS = 120
MAX_MESSAGE_BYTES = 10_000  # in a record, where a smiley has 12; a model that is to repair the code reads it all
MAX_LOG_BYTES = 200_000  # in a record, of compiler or process output

HEAD_BYTES = 64 << 10  # of a source, in which its `kb:` comment is looked for
