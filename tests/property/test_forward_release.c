/* The forward pass to the bit, on the demo model: wide enough that products are shared
 * among threads. */
#include "support/forward_suite.h"

int main(void)
{
    return forward_suite(TEST_MODELS "/demo");
}
