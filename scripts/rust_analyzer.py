#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Adds weir's crates to what the kernel's generator made for rust-analyzer.

usage: rust_analyzer.py PROJECT TOP BUILD
"""

import json
import pathlib
import sys


def main():
    """Reads the project, adds two crates, and writes it to standard output."""
    project_file, top, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    project = json.loads(project_file.read_text(encoding="utf-8"))
    crates = project["crates"]
    by_name = {crate["display_name"]: number for number, crate in enumerate(crates)}
    kernel = crates[by_name["kernel"]]

    def add(name, root, dependencies):
        crates.append({
            "display_name": name,
            "root_module": str(top / root),
            "is_workspace_member": True,
            "is_proc_macro": False,
            "edition": "2021",
            "cfg": kernel["cfg"] + ["MODULE", "weir_kunit"],
            "env": {**kernel.get("env", {}), "WEIR_OBJ": str(build), "RUST_MODFILE": "weir"},
            "source": {"include_dirs": [str(top / "rust"), str(build)], "exclude_dirs": []},
            "deps": [{"crate": by_name[dependency], "name": dependency} for dependency in dependencies],
        })
        by_name[name] = len(crates) - 1

    common = [name for name in ("core", "kernel", "pin_init", "zerocopy", "zerocopy_derive")
              if name in by_name]
    add("weir_core", "rust/core/weir_core.rs", common)
    add("weir_main", "rust/weir_main.rs", common + ["weir_core"])
    json.dump(project, sys.stdout, indent=4)


if __name__ == "__main__":
    main()
