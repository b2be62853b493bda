"""Measures what the library costs on the host, with a GPU runtime that does nothing.

    python3 tools/bench/host_cost.py [--images aotriton.images]

- the first use of a functional in a new process: finding and opening its pack, unpacking its code object
- the first call and a warm attn_fwd call, in time and, where valgrind is (apt-get install valgrind),
  in instructions; then the same of a call that the persistent schedule takes
- resident memory while 100 code objects are loaded (all 74 of the dispatch tests' attn_fwd), and its
  growth over thousands of calls
- the size of libaotriton_v2.so, stripped

The packs are those of the dispatch tests, whose code objects are small texts; --images takes real ones
of gfx942, as `./bazelw build //:images --platforms=gfx942` makes them.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(REPO, "bazel-bin/tools/bench/host_cost")
LIBRARY = os.path.join(REPO, "bazel-bin/libaotriton_v2.so")
TEST_IMAGES = os.path.join(REPO, "bazel-bin/tests/dispatch/packs/images")
CALLS = 2000  # under valgrind
FIRST_CALLS = range(0, 576, 7)  # of host_cost.cc's FirstCalls(): all head_dims, dtypes and features are among them


def run(images, *command):
    environment = {**os.environ, "AOTRITON_IMAGES_DIR": images}
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        sys.exit(f"host_cost: {' '.join(command)} failed:\n{result.stdout}")
    return result.stdout


def instructions(images, folder, call):
    """Of one warm call, with all that it calls."""
    output = run(images, "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind", "--collect-atstart=no",
                 "--toggle-collect=aotriton_attn_fwd", PROGRAM, call, str(CALLS))
    return int(re.search(r"Collected : (\d+)", output).group(1)) / CALLS


def first_uses(images):
    """Microseconds of the first use of a functional, each in a process of its own, of those that are in the packs."""
    outputs = [run(images, PROGRAM, "first", str(number)) for number in FIRST_CALLS for _ in range(3)]
    found = [float(output.split()[1]) for output in outputs if output]
    # The least of three: what the machine does beside only ever adds.
    return sorted(min(found[i:i + 3]) for i in range(0, len(found), 3))


def main():
    parser = argparse.ArgumentParser(prog="host_cost", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", default=TEST_IMAGES, help="the folder of packs")
    images = os.path.abspath(parser.parse_args().images)
    subprocess.run(["./bazelw", "build", "//tools/bench:host_cost", "//tests/dispatch:packs", "//:library"], cwd=REPO, check=True)

    times = first_uses(images)
    print(f"first use of {len(times)} functionals: first_use_us median {times[len(times) // 2]:.0f}, most {times[-1]:.0f}")
    with tempfile.TemporaryDirectory() as folder:
        for call in ("warm", "persistent"):
            print(f"{call}:\n{run(images, PROGRAM, call, '1000000')}", end="")
            if shutil.which("valgrind"):
                print(f"warm_instructions {instructions(images, folder, call):.0f}")
            else:
                print("warm_instructions: not measured, there is no valgrind (apt-get install valgrind)")
        print("the library:")
        stripped = os.path.join(folder, "stripped.so")
        subprocess.run(["strip", "-o", stripped, LIBRARY], check=True)
        print(f"stripped_bytes {os.path.getsize(stripped)}")
    print(run(images, PROGRAM, "memory", "100"), end="")


if __name__ == "__main__":
    main()
