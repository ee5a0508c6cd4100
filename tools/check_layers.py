# SPDX-License-Identifier: Apache-2.0
"""Checks every #include below src/ against definitions/layers.toml.

usage: check_layers.py [ROOT]; prints one line a problem and exits 1 if there is any.
"""
import fnmatch
import pathlib
import re
import sys
import tomllib

TEST_LIBRARIES = (
    "the operating system", "the calendar and the clocks", "locks", "cmocka", "zlib",
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


class Layers:
    """The table, with one question to it: why may this file not include that header?"""

    def __init__(self, table):
        self.folders = {entry["name"]: entry for entry in table["folder"]}
        self.libraries = table["library"]
        self.language = table["language"]["headers"]

    def folder_of(self, path):
        """The folder of the table that a path below src/ lies in, or None."""
        parts = path.split("/")[:-1]
        for length in range(len(parts), 0, -1):
            name = "/".join(parts[:length])
            if name in self.folders:
                return name
        return None

    @staticmethod
    def covers(names, folder):
        return any(folder == name or folder.startswith(name + "/") for name in names)

    @staticmethod
    def named(header, shapes):
        return any(fnmatch.fnmatchcase(header, shape) for shape in shapes)

    def folder_allowed(self, source, target):
        if source == target:
            return True
        rule = self.folders[source]
        if self.covers(rule.get("folders", []), target):
            return True
        if "layers" not in rule or self.covers(rule.get("not", []), target):
            return False
        first, last = rule["layers"]
        return first <= self.folders[target]["layer"] <= last

    def problem(self, path, header, quoted, exists):
        """None, or what is wrong. path: of the including file below src/; exists(header): whether
        it is a file of src/ or a generated one."""
        source = self.folder_of(path)
        if source is None:
            return "its folder is not in definitions/layers.toml"
        test = path.endswith(("_test.c", "_testing.c", "_testing.h", ".inc"))
        if quoted:
            return self.own_header_problem(source, header, exists)
        if header.startswith("esker/") and self.folders[source].get("public"):
            return None
        if self.named(header, self.language):
            return None
        for library in self.libraries:
            if self.named(header, library["headers"]):
                free = library["name"] in TEST_LIBRARIES
                if (test and free) or self.covers(library["folders"], source):
                    return None
                return f"<{header}> ({library['name']}) is not for {source}"
        return f"<{header}> is not in definitions/layers.toml"

    def own_header_problem(self, source, header, exists):
        if ".." in header.split("/"):
            return f'"{header}" leaves its folder; write it from src/'
        target = self.folder_of(header)
        if target is None:
            return f'"{header}" does not name a folder of definitions/layers.toml'
        if not exists(header):
            return f'"{header}" is neither in src/ nor generated'
        if header.endswith("_private.h") and target != source:
            return f'"{header}" is private to {target}'
        if not self.folder_allowed(source, target):
            return f"{source} may not include {target}"
        return None


def generated_headers(root):
    """The headers that the esk_generate calls below definitions/ name."""
    found = set()
    for hook in (root / "definitions").glob("**/*.cmake"):
        found.update(re.findall(r"[\w/]+\.(?:h|inc)\b", hook.read_text(encoding="utf-8")))
    return found


def check(root):
    with open(root / "definitions" / "layers.toml", "rb") as file:
        layers = Layers(tomllib.load(file))
    generated = generated_headers(root)
    source_root = root / "src"

    def exists(header):
        return header in generated or (source_root / header).is_file()

    problems = []
    count = 0
    for file in sorted(source_root.rglob("*")):
        if file.suffix not in (".c", ".h", ".cc", ".inc"):
            continue
        count += 1
        path = file.relative_to(source_root).as_posix()
        text = file.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            problem = layers.problem(path, match[2], match[1] == '"', exists)
            if problem:
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"src/{path}:{line}: {problem}")
    if count == 0:
        problems.append(f"{source_root}: no source found")
    return problems


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    problems = check(root.resolve())
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
