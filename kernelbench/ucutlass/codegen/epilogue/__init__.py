"""The epilogue of a kernel as C++ functors, which both back ends use."""
