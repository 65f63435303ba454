/* requests.cu - which keys a row sees and where they are cut, from what lies in device memory
 * now. The rules of visibility.h; every cut follows from the request's own numbers and the
 * plan's constants, never from its neighbours. */

typedef struct mlai_cuda_attend_params params;

struct key_range {
    int begin, end;
};

struct request_view {
    int first_row; /* of the batch */
    int num_rows;
    int length; /* keys */
    int origin; /* first key that any of its rows sees, down to a multiple of a tile */
    int split_tokens; /* split k is [origin + k s, origin + (k + 1) s) */
    int num_splits;   /* at least 1 */
};

DEVICE key_range keys_of_row(const params &p, const request_view &r, int row)
{
    int end = r.length;
    if (p.causal) {
        end = min(max(r.length - r.num_rows + row + 1, 0), r.length);
    }
    int begin = p.window > 0 && end > p.window ? end - p.window : 0;
    return {begin, end};
}

DEVICE int divide_up(int value, int by)
{
    return value / by + (value % by > 0);
}

DEVICE void cut(const params &p, request_view &r)
{
    r.origin = keys_of_row(p, r, 0).begin / p.split.unit * p.split.unit;
    int span = r.length - r.origin;
    int s = divide_up(span, p.split.target);
    s = min(max(s, p.split.min_tokens), p.split.max_tokens);
    s = max(s, divide_up(span, p.split.max_splits));
    r.split_tokens =
        (int)min((s64)divide_up(s, p.split.unit) * p.split.unit, (s64)0x7fffffc0);
    r.num_splits = max(divide_up(span, r.split_tokens), 1);
}

DEVICE request_view view_of(const params &p, int request)
{
    request_view r;
    s64 most = (s64)p.table_width * p.page_tokens;
    r.first_row = p.starts[request];
    r.num_rows = max(p.starts[request + 1] - r.first_row, 0);
    r.length = (int)min(max((s64)p.lens[request], (s64)0), most);
    cut(p, r);
    return r;
}

/* Keys of split k that a row sees; empty where begin >= end. */
DEVICE key_range keys_in_split(const request_view &r, key_range seen, int k)
{
    s64 begin = (s64)r.origin + (s64)k * r.split_tokens;
    s64 end = min(begin + r.split_tokens, (s64)seen.end);
    return {(int)min(max(begin, (s64)seen.begin), (s64)0x7fffffff), (int)end};
}

/* The last request that begins at or before a row: empty ones have none. */
DEVICE int request_of_row(const params &p, int row)
{
    int low = 0;
    int high = p.num_requests;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (p.starts[middle] <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
