"""Checks that sam build made a static executable for the right architecture for
every function, or the one named. Usage: check_bootstraps.py FOLDER arm64|x86_64 [FUNCTION]"""

import pathlib
import struct
import sys

import yaml

MACHINES = {"arm64": 183, "x86_64": 62}  # e_machine
PT_DYNAMIC, PT_INTERP = 2, 3  # a static executable has neither


def fault(path, architecture):
    """Returns why Lambda cannot run the file, or None."""
    if not path.is_file():
        return "does not exist"
    if not path.stat().st_mode & 0o111:
        return "is not executable"
    elf = path.read_bytes()
    if elf[:6] != b"\x7fELF\x02\x01":
        return "is not a 64-bit little-endian ELF file"
    machine, = struct.unpack_from("<H", elf, 18)
    if machine != MACHINES[architecture]:
        return f"is for machine {machine}, not for {architecture}"
    table, = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    for i in range(count):
        kind, = struct.unpack_from("<I", elf, table + i * size)
        if kind in (PT_DYNAMIC, PT_INTERP):
            return "is not static"
    return None


def main():
    folder, architecture = pathlib.Path(sys.argv[1]), sys.argv[2]
    built = yaml.safe_load((folder / "template.yaml").read_text())["Resources"]
    functions = sys.argv[3:] or [n for n, r in built.items() if r["Type"] == "AWS::Serverless::Function"]
    if not functions:
        sys.exit(f"{folder}: no functions")
    faults = {n: fault(folder / n / "bootstrap", architecture) for n in functions}
    for name, why in faults.items():
        if why:
            print(f"{folder}/{name}/bootstrap {why}", file=sys.stderr)
    if any(faults.values()):
        return 1
    print(f"{architecture}: {len(functions)} static executables")
    return 0


sys.exit(main())
