"""Lines as the benchmark writes them."""


def line(solver="epsilot", size=256, seed=0, repeat=0, seconds=1.0, **more):
    base = {
        "family": "images",
        "size": size,
        "n": size,
        "seed": seed,
        "solver": solver,
        "rtol": 0.01 if solver == "epsilot" else None,
        "reg": None,
        "tol": None,
        "repeat": repeat,
        "status": "done",
        "seconds": seconds,
        "peak_mib": 1.0,
        "limit": 2.0,
        "error": 0.0,
        "gap": 0.0,
        "value": 1.0,
        "lower": 1.0,
        "marginal_error": 0.0,
        "version": "0",
    }
    return base | more


def entropic(reg, **more):
    return line("sinkhorn", reg=reg, tol=0.3, **more)
