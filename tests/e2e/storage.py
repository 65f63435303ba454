"""What a number becomes in each storage format, in NumPy, from the formats' definitions."""
import numpy as np


def bf16(values):
    """To nearest even; no NaN."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return rounded.astype(np.uint32).view(np.float32)


def _e4m3_values():
    codes = np.arange(127)
    exponent, mantissa = codes >> 3, codes & 7
    small = mantissa * 2.0**-9
    return np.where(exponent == 0, small, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0))


E4M3 = _e4m3_values()  # the non-negative ones, in order: code i has value E4M3[i]


def e4m3(values):
    """To nearest, ties to the even code, beyond 448 to 448; NaN stays NaN."""
    size = np.abs(np.asarray(values, np.float64))
    above = np.clip(np.searchsorted(E4M3, size), 1, 126)
    low, high = E4M3[above - 1], E4M3[above]
    middle = (low + high) / 2
    takes_high = (size > middle) | ((size == middle) & (above % 2 == 0))
    nearest = np.where(takes_high, high, low)
    nearest = np.where(np.isnan(size), np.nan, nearest)
    return np.copysign(nearest, values).astype(np.float64)


def fp8(values, scale):
    return e4m3((values / np.float32(scale)).astype(np.float32)) * np.float64(np.float32(scale))


def fp8_g128(rows, latent_dim):
    """Groups of 128 share a scale, max|x| / 448 in f32 or 1; the rope part is bf16."""
    out = np.empty(rows.shape, np.float64)
    groups = rows[..., :latent_dim].reshape(*rows.shape[:-1], latent_dim // 128, 128)
    scale = (np.abs(groups).max(-1, keepdims=True) / np.float32(448)).astype(np.float32)
    scale = np.where(scale == 0, np.float32(1), scale)
    stored = e4m3((groups / scale).astype(np.float32)) * scale.astype(np.float64)
    out[..., :latent_dim] = stored.reshape(*rows.shape[:-1], latent_dim)
    out[..., latent_dim:] = bf16(rows[..., latent_dim:])
    return out


def stored_rows(kv_format, rows, latent_dim, scale):
    with np.errstate(invalid="ignore"):
        return {
            "f32": lambda: rows.astype(np.float64),
            "bf16": lambda: bf16(rows).astype(np.float64),
            "fp8": lambda: fp8(rows, scale),
            "fp8_g128": lambda: fp8_g128(rows, latent_dim),
        }[kv_format]()


def stored_query(dtype, query, scale):
    return {
        "f32": lambda: query.astype(np.float64),
        "bf16": lambda: bf16(query).astype(np.float64),
        "e4m3": lambda: fp8(query, scale),
    }[dtype]()
