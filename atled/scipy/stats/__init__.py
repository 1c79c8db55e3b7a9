"""SciPy's probability distributions, each a module of functions, and descriptive statistics.

`stats.norm.logpdf`, `from atled.scipy.stats import norm` and `import atled.scipy.stats.norm` all work; the file of a
distribution is loaded when one of its functions is first used. `family.py` explains how a distribution is defined.
"""

from __future__ import annotations

import importlib.machinery
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atled.scipy.stats.descriptive import mode, rankdata, sem
    from atled.scipy.stats.kernel_density import gaussian_kde

_FUNCTIONS = {"mode": "descriptive", "rankdata": "descriptive", "sem": "descriptive", "gaussian_kde": "kernel_density"}
_FILES: dict[str, str] = {}  # the file that defines each distribution


class Distribution(ModuleType):
    """A module with the functions of a distribution, which are loaded when the first of them is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        functions = getattr(importlib.import_module(_FILES[self.__name__]), self.__name__.rpartition(".")[2])
        vars(self).update(functions, __all__=sorted(functions))
        if name not in vars(self):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return vars(self)[name]

    def __dir__(self) -> list[str]:
        return [*self.__all__, *vars(self)]


def _distributions(file: str, names: str) -> list[Any]:
    for name in names.split():
        _FILES[f"{__name__}.{name}"] = f"{__name__}.{file}"
        sys.modules[f"{__name__}.{name}"] = module = Distribution(f"{__name__}.{name}")
        module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None)
    return [sys.modules[f"{__name__}.{name}"] for name in names.split()]


bernoulli, betabinom, binom, geom, multinomial, nbinom, poisson = _distributions(
    "discrete", "bernoulli betabinom binom geom multinomial nbinom poisson"
)
beta, chi2, expon, gamma, pareto, uniform = _distributions("bounded_support", "beta chi2 expon gamma pareto uniform")
cauchy, gennorm, gumbel_l, gumbel_r, laplace, logistic, norm, t, truncnorm = _distributions(
    "real_line", "cauchy gennorm gumbel_l gumbel_r laplace logistic norm t truncnorm"
)
dirichlet, multivariate_normal, vonmises, wrapcauchy = _distributions(
    "others", "dirichlet multivariate_normal vonmises wrapcauchy"
)


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gaussian_kde",
    "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode", "multinomial", "multivariate_normal",
    "nbinom", "norm", "pareto", "poisson", "rankdata", "sem", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip
__dir__ = __all__.copy
