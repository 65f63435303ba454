/* placement.c - which rank keeps which token: see placement.h. */
#include "attention/placement.h"

int32_t mlai_placement_owner(mlai_placement placement, int64_t position)
{
    return (int32_t)(position / placement.interleave % placement.num_ranks);
}

int64_t mlai_placement_local_index(mlai_placement placement, int64_t position)
{
    int64_t round = (int64_t)placement.num_ranks * placement.interleave;
    return position / round * placement.interleave + position % placement.interleave;
}

int64_t mlai_placement_local_length(mlai_placement placement, int32_t rank, int64_t length)
{
    int64_t round = (int64_t)placement.num_ranks * placement.interleave;
    int64_t rest = length % round - (int64_t)rank * placement.interleave;
    int64_t last = rest < 0 ? 0 : rest > placement.interleave ? placement.interleave : rest;
    return length / round * placement.interleave + last;
}
