"""The held-out text of the reference, scored."""
import os

import program

ALLOWED = 2e-4  # relative: 0.02 %


def answer(test, *options):
    return test.answer("score", program.DEMO, os.path.join(program.DATA, "score.txt"), "--json",
                       *options)


def check(test, nll, wanted):
    print(f"nll {nll:.4f}, reference {wanted:.4f}, relative {nll / wanted - 1:.2e}", flush=True)
    test.assertLessEqual(abs(nll / wanted - 1), ALLOWED)
