/* Between rule.c, meet.c and told.c only: whether two places that a function touches may be one. */
#ifndef ING_AD_MEET_H
#define ING_AD_MEET_H

#include "ad/ad_int.h"

enum {
    ING_AD_ANY = ING_MAX_NDIM + 1, /* so many subscripts: it may be any element */
    ING_AD_DEPTH = 8               /* of what is made of numbers of the launch */
};

typedef enum ing_ad_verdict {
    ING_AD_NO,
    ING_AD_SAID, /* no, if numbers of the launch differ (RULE3) */
    ING_AD_MAYBE,
    ING_AD_YES
} ing_ad_verdict;

bool ing_ad_is_inside(const ing_ad_fn *n, uint32_t id, uint32_t loop);
bool ing_ad_same_array(const ing_ad_touch *a, const ing_ad_touch *b);
bool ing_ad_other_member(const ing_ad_touch *a, const ing_ad_touch *b);
/* The local that a value is loaded from; 0 = none. */
uint32_t ing_ad_local_of(const ing_ad_fn *n, uint32_t id);
/* The same number, in one iteration of all loops around both. */
bool ing_ad_same_value(const ing_ad_fn *n, uint32_t a, uint32_t b, uint32_t left);
/* y - x, of forms that are known. */
bool ing_ad_difference(const ing_ad_fn *n, const ing_ir_form *x, const ing_ir_form *y,
                       ing_ir_form *d);
uint64_t ing_ad_times_of(const ing_ir_form *form, uint32_t id);

/* Is what one iteration of the loop reads written by a later one; of loop 0: by the same one? */
ing_ad_verdict ing_ad_meet(const ing_ad_fn *n, const ing_ad_touch *r,
                           const ing_ad_touch *w, uint32_t loop);
/* Is the write after the read at all, in this loop or (0) in the text (RULE2)? */
bool ing_ad_comes_later(const ing_ad_fn *n, const ing_ad_touch *r,
                        const ing_ad_touch *w, uint32_t loop);
/* Is the write after the read, somewhere, and at its place? */
ing_ad_verdict ing_ad_overwrites(const ing_ad_fn *n, const ing_ad_touch *r,
                                 const ing_ad_touch *w);
/* Places that lie in ranges which are known not to meet; of loops of several tasks. */
bool ing_ad_ranges_apart(const ing_ad_fn *n, const ing_ad_touch *r,
                         const ing_ad_touch *w);

/* Of places that meet as ING_AD_SAID: the axes, any of which is enough; how many (ING_MAX_NDIM at most). */
uint32_t ing_ad_tell(const ing_ad_fn *n, const ing_ad_touch *r, const ing_ad_touch *w,
                     uint32_t loop, ing_ad_told *out);
/* Is it made of numbers that the launch was given, or the func? */
bool ing_ad_is_given(const ing_ad_fn *n, uint32_t id);

/* told.c: what the launch must find different so that the write leaves what was read. `meets`: it may be
 * overwritten whatever the numbers are. */
ing_status ing_ad_note_told(ing_ad *ad, const ing_ad_fn *n, const ing_ad_touch *r,
                            const ing_ad_touch *w, bool *meets, ing_err *e);

#endif
