/* The forward pass to the bit, on a checkpoint small enough for every sanitizer. */
#include "support/forward_suite.h"
#include "support/tiny_model.h"

int main(void)
{
    tiny_model tiny = tiny_model_write();
    int status = forward_suite(tiny.dir);
    tiny_model_remove(&tiny);
    return status;
}
