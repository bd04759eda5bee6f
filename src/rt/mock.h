/* mock: a device that is this processor, with memory that the host cannot address. */
#ifndef ING_MOCK_H
#define ING_MOCK_H

#include "rt/mem.h"
#include "rt/rt.h"

extern const ing_home ing_home_mock;

/* As ing_rt_run, with the device's memory accessible meanwhile. */
int32_t ing_mock_run(ing_rt *rt, ing_rt_launch *l);
void ing_mock_after_fork(void);

#endif
