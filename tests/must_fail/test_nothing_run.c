/* A suite on a machine that has none of its levels: it tests nothing, so it fails. */
#include "support/levels.h"

int main(void)
{
    levels suite = levels_start("nothing_run");
    (void)levels_run(&suite, "avx2", false);
    return levels_finish(&suite);
}
