/* math.h, with functions of it as older C libraries have them: a symbol that got a new version would tie the
 * extension to the C library that it was built with (hypot: 2.35, fmod: 2.38; the values are the same). */
#ifndef ING_BASE_LIBM_H
#define ING_BASE_LIBM_H

#include <math.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define ING_LIBM_OLD "GLIBC_2.2.5"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define ING_LIBM_OLD "GLIBC_2.17"
#endif
#ifdef ING_LIBM_OLD
__asm__(".symver hypot, hypot@" ING_LIBM_OLD);
__asm__(".symver hypotf, hypotf@" ING_LIBM_OLD);
__asm__(".symver fmod, fmod@" ING_LIBM_OLD);
__asm__(".symver fmodf, fmodf@" ING_LIBM_OLD);
#endif

#endif
