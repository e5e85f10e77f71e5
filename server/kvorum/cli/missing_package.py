"""The complaint of a command that needs a package of an extra, which is not installed."""


def missing_package_text(user: str, error: ImportError, *, extra: str) -> str:
    """Return what `user`, such as an option, needs, and the extra of kvorum that installs it.

    A package that is there and cannot be imported is named with the reason.
    """
    advice = f"install kvorum with its extra '{extra}'"
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        package, _, _ = error.name.partition(".")
        return f"{user} needs the package {package}: {advice}"
    return f"{user} needs a package that cannot be imported: {error}: {advice}"
