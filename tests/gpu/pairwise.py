"""Few combinations of the values of some axes in which any two values of any two axes meet."""

import itertools
import random


def combinations(axes, seed=0):
    """Greedy: each combination starts at a pair not met yet and takes what meets most others.

    Args:
      axes: {name: list of values}.

    Returns:
      list of {name: value}.
    """
    rng = random.Random(seed)
    names = list(axes)
    left = {pair for a, b in itertools.combinations(range(len(names)), 2)
            for pair in itertools.product([(a, i) for i in range(len(axes[names[a]]))],
                                          [(b, j) for j in range(len(axes[names[b]]))])}
    found = []
    while left:
        # min, not any: a set's order is not the same in every run.
        chosen = dict(min(left))
        for axis in rng.sample(range(len(names)), len(names)):
            if axis in chosen:
                continue
            def gain(value):
                return sum(tuple(sorted(((axis, value), other))) in left for other in chosen.items())

            chosen[axis] = max((gain(value), rng.random(), value) for value in range(len(axes[names[axis]])))[2]
        left -= {(a, b) for a, b in itertools.combinations(sorted(chosen.items()), 2)}
        found.append({names[axis]: axes[names[axis]][value] for axis, value in sorted(chosen.items())})
    return found
