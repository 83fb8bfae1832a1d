"""Regular expressions that are compiled when they are first used.

Some two hundred stand at the head of modules, and a run uses few of them: compiled on import, they were a third of the
time in which a short run starts.
"""

import re
from typing import AnyStr, cast


class _Lazy:
    """What passes for the compiled pattern: each of its attributes is fetched once, and then found without a call."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # who copies or pickles it asks for these before it has a source
            raise AttributeError(name)
        found = getattr(re.compile(self._source, self._flags), name)  # compiled once: `re` keeps it
        self.__dict__[name] = found
        return found

    def __reduce__(self) -> tuple[object, ...]:
        return lazy_pattern, (self._source, self._flags)


def lazy_pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile(source, flags)`, put off until one of its methods is asked for; functions of `re` do not take it.

    Raises re.error on first use if `source` is no expression (a test compiles all).
    """
    return cast("re.Pattern[AnyStr]", _Lazy(source, flags))
