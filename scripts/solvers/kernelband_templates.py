"""KernelBand without a model: its strategies are moves along the parameters of the templates of ``template``.

Options are those of ``kernelband``, without ``select``. It stops where every choice is tried. Needs
``pip install 'kernelbench[search]'``.
"""

from kernelbench.solvers.kernelband.search import search
from kernelbench.solvers.kernelband.settings import Settings
from kernelbench.solvers.kernelband.template_author import TemplateAuthor
from kernelbench.solvers.templates.patterns import NoTemplate
from kernelbench.solvers.templates.plans import fitting


def solve(task):
    try:
        author = TemplateAuthor(task, fitting(task))
    except NoTemplate as reason:
        task.say(f"no template fits: {reason}")
        return
    yield from search(task, author.settings(Settings.of(task.options)), author)
