// Learning curves as TensorBoard reads them: a file of records, each a protocol buffer "Event" with
// its length before it and checksums after both.
#include <psifold/agent.h>

#include "base/context.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EVENT = 512, WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

// CRC-32C (Castagnoli), bit by bit: records are short.
static uint32_t crc32c(const uint8_t *bytes, size_t n)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

// The format stores checksums rotated, so that a checksum of data with checksums in it is sound.
static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

// A message under construction.
typedef struct message {
    uint8_t bytes[EVENT];
    size_t n;
} message;

static void put_bytes(message *m, const void *bytes, size_t n)
{
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void put_little(message *m, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) m->bytes[m->n++] = (uint8_t)(value >> 8 * i);
}

static void put_varint(message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) m->bytes[m->n++] = (uint8_t)(value | 0x80);
    m->bytes[m->n++] = (uint8_t)value;
}

static void put_key(message *m, unsigned field, unsigned wire)
{
    put_varint(m, field << 3 | wire);
}

static void put_field(message *m, unsigned field, const void *bytes, size_t n)
{
    put_key(m, field, WIRE_BYTES);
    put_varint(m, n);
    put_bytes(m, bytes, n);
}

// Event { double wall_time = 1; int64 step = 2; … }
static void begin_event(message *m, double wall_time, uint64_t step)
{
    uint64_t bits;
    memcpy(&bits, &wall_time, sizeof bits);
    m->n = 0;
    put_key(m, 1, WIRE_64);
    put_little(m, bits, 8);
    put_key(m, 2, WIRE_VARINT);
    put_varint(m, step);
}

// Value { string tag = 1; float simple_value = 2; } as one of Summary { repeated Value value = 1; }
static void put_value(message *summary, const char *tag, double number)
{
    message value = {.n = 0};
    const float narrow = (float)number;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    put_field(&value, 1, tag, strlen(tag));
    put_key(&value, 2, WIRE_32);
    put_little(&value, bits, 4);
    put_field(summary, 1, value.bytes, value.n);
}

static psi_status write_record(base_output *output, const message *m)
{
    psi_status status = PSI_OK;
    message head = {.n = 0}, tail = {.n = 0};
    put_little(&head, m->n, 8);
    put_little(&head, masked(crc32c(head.bytes, 8)), 4);
    put_little(&tail, masked(crc32c(m->bytes, m->n)), 4);
    TRY(base_output_write(output, head.bytes, head.n));
    TRY(base_output_write(output, m->bytes, m->n));
    TRY(base_output_write(output, tail.bytes, tail.n));
done:
    return status;
}

psi_status psi_curve_save_events(psi_ctx *ctx, const psi_agent_episode *episodes, size_t n,
                                 double started, const char *path)
{
    static const char VERSION[] = "brain.Event:2";
    psi_status status = PSI_OK;
    base_output *output = NULL;
    message event, summary;
    TRY(base_output_open(ctx, path, BASE_FILE, true, &output));
    begin_event(&event, started, 0);
    put_field(&event, 3, VERSION, sizeof VERSION - 1);
    TRY(write_record(output, &event));
    for (size_t i = 0; i < n; i++) {
        const psi_agent_episode *e = &episodes[i];
        summary.n = 0;
        put_value(&summary, "episode/steps", (double)e->steps);
        put_value(&summary, "episode/reward", e->reward);
        put_value(&summary, "episode/reward_per_step", e->reward / (double)e->steps);
        put_value(&summary, "episode/truncated", e->truncated ? 1 : 0);
        put_value(&summary, "agent/epsilon", e->epsilon);
        if (isfinite(e->loss)) put_value(&summary, "agent/loss", e->loss);
        begin_event(&event, started + e->seconds, i + 1);
        put_field(&event, 5, summary.bytes, summary.n);
        TRY(write_record(output, &event));
    }
    base_output *whole = output;
    output = NULL;
    TRY(base_output_commit(whole));
done:
    base_output_discard(output);
    return status;
}
