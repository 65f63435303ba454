#include <stdio.h>

#include "mla/mla.h"

int main(void)
{
    printf("mla %d.%d.%d\n", MLA_VERSION_MAJOR, MLA_VERSION_MINOR, MLA_VERSION_PATCH);
    return 0;
}
