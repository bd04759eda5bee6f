"""What tests need to forge the files of a cache: their checksum (XXH3-128 of 17 to 128 and of more
than 240 bytes, seed 0), entries and leases with it put right."""

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
MASK = 2**64 - 1
PRIMES = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x85EBCA77C2B2AE63
LANES = (0xC2B2AE3D, PRIMES[0], PRIMES[1], 0x165667B19E3779F9, PRIMES[2], 0x85EBCA77,
         0x27D4EB2F165667C5, 0x9E3779B1)


def word(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def mix16(data, at, secret):
    product = (word(data, at) ^ word(SECRET, secret)) * (word(data, at + 8) ^ word(SECRET, secret + 8))
    return (product & MASK) ^ (product >> 64)


def avalanche(v):
    v = (v ^ v >> 37) * 0x165667919E3779F9 & MASK
    return v ^ v >> 32


def accumulate(acc, data, at, secret):
    for i in range(8):
        value = word(data, at + 8 * i)
        key = value ^ word(SECRET, secret + 8 * i)
        acc[i ^ 1] = (acc[i ^ 1] + value) & MASK
        acc[i] = (acc[i] + (key & 0xFFFFFFFF) * (key >> 32)) & MASK


def merged(acc, start, secret):
    for i in range(0, 8, 2):
        product = (acc[i] ^ word(SECRET, secret + 8 * i)) * (acc[i + 1] ^ word(SECRET, secret + 8 * i + 8))
        start += (product & MASK) ^ (product >> 64)
    return avalanche(start & MASK)


def long_checksum(data):
    n, acc = len(data), list(LANES)
    for at in range(0, n - 1, 1024):
        for stripe in range(at, min(at + 1024, (n - 1) // 64 * 64), 64):
            accumulate(acc, data, stripe, stripe % 1024 // 8)
        if at + 1024 < n:
            acc = [((v ^ v >> 47 ^ word(SECRET, 128 + 8 * i)) * LANES[7]) & MASK
                   for i, v in enumerate(acc)]
    accumulate(acc, data, n - 64, 192 - 71)
    low = merged(acc, n * PRIMES[0] & MASK, 11)
    high = merged(acc, ~(n * PRIMES[1]) & MASK, 192 - 75)
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


def checksum(data):
    n = len(data)
    if n > 240:
        return long_checksum(data)
    assert 17 <= n <= 128
    low, high = n * PRIMES[0] & MASK, 0
    for k in range((n - 1) // 32, -1, -1):
        one, two, secret = 16 * k, n - 16 * (k + 1), 32 * k
        low = (low + mix16(data, one, secret)) & MASK
        low ^= (word(data, two) + word(data, two + 8)) & MASK
        high = (high + mix16(data, two, secret + 16)) & MASK
        high ^= (word(data, one) + word(data, one + 8)) & MASK
    both = (low * PRIMES[0] + high * PRIMES[2] + n * PRIMES[1]) & MASK
    low, high = avalanche(low + high & MASK), -avalanche(both) & MASK
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


def sealed(entry, payload):
    """The entry with another payload, its length and checksum put right."""
    head = entry[-64:-32] + len(payload).to_bytes(8, "little")
    return payload + head + checksum(payload + head) + bytes(8)


def lease(pid, start=0, space=0, boot=bytes(16), host=bytes(16), end_boot=0, end_real=0):
    """The bytes of a lease, as at the top of src/store/lease.c; clocks in nanoseconds."""
    numbers = (1, pid, start, space)
    head = b"INGLEASE" + b"".join(n.to_bytes(8, "little") for n in numbers) + boot + host
    head += b"".join(min(n, MASK).to_bytes(8, "little") for n in (end_boot, end_real)) + bytes(24)
    assert len(head) == 112
    return head + checksum(head)
