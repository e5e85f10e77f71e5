"""Names that a package promises in `__all__` exist."""

import ast

from tests.support.source_tree import SOURCE_ROOTS, SourceFile, python_files


def declared_names(file: SourceFile) -> list[str] | None:
    for node in file.tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            assert isinstance(node.value, ast.List | ast.Tuple), f"{file.name}: odd __all__"
            return [ast.literal_eval(element) for element in node.value.elts]
    return None


def bound_names(file: SourceFile) -> set[str]:
    names: set[str] = set()
    for node in file.tree.body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def test_everything_in_all_is_there() -> None:
    missing = [
        f"{file.name}: {name}"
        for file in python_files(*SOURCE_ROOTS)
        for name in declared_names(file) or []
        if name not in bound_names(file) and "__getattr__" not in bound_names(file)
    ]
    assert missing == []
