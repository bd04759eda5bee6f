#include "common.h"

void hashins(n_t n, n_t m, const int *restrict key, int *restrict slot, int *restrict cnt) {
    int mask = m - 1;
    for (n_t i = 0; i < n; i++) {
        int k = key[i], h = ((int)((unsigned)k * 1640531527u) >> 7) & mask;
        while (slot[h] != 0 && slot[h] != k) h = (h + 1) & mask;
        slot[h] = k;
        cnt[h]++;
    }
}
