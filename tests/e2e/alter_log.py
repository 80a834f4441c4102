"""Changes one record of an update log, with a good CRC: the step of a push was computed from an earlier version.

  alter_log.py LOG
  alter_log.py LOG --last_chunk  # Of a push to the last of the log's chunks, which is a shard of a table if there are any.
"""

import struct
import sys
import zlib

UPDATE = 3  # Of UpdateLogRecord.
CHUNK, BASE_VERSION, EXAMPLES = 5, 6, 8  # Of UpdateRecord.


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def write_varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(message):
    """Number, wire type, value and bytes of each field."""
    at = 0
    while at < len(message):
        begin = at
        tag, at = read_varint(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = read_varint(message, at)
        elif kind == 2:
            length, at = read_varint(message, at)
            value, at = message[at : at + length], at + length
        else:
            size = {1: 8, 5: 4}[kind]
            value, at = message[at : at + size], at + size
        yield tag >> 3, kind, value, message[begin:at]


def update_of(record):
    """The record's update; None if it has none."""
    number, _, update, _ = next(fields(record))
    return update if number == UPDATE else None


def chunk_of(record):
    """The chunk of the record's update, which is left out if it is 0; -1 if it has no update."""
    update = update_of(record)
    if update is None:
        return -1
    return next((value for number, _, value, _ in fields(update) if number == CHUNK), 0)


def altered(record):
    """The record computed from one version earlier; None if it is no update, an empty one, or of the first versions."""
    update = update_of(record)
    if update is None or all(number != EXAMPLES for number, _, _, _ in fields(update)):
        return None
    out, found = b"", False
    for number, kind, value, raw in fields(update):
        if number == BASE_VERSION and value > 2:
            raw, found = write_varint(number << 3 | kind) + write_varint(value - 1), True
        out += raw
    return write_varint(UPDATE << 3 | 2) + write_varint(len(out)) + out if found else None


def records_of(log):
    at = 0
    while at < len(log):
        length, _ = struct.unpack_from("<II", log, at)
        yield log[at + 8 : at + 8 + length]
        at += 8 + length


def main(path, last_chunk):
    with open(path, "rb") as file:
        log = file.read()
    records = list(records_of(log))
    wanted = max(map(chunk_of, records)) if last_chunk else None
    out, done = b"", False
    for record in records:
        if not done and len(out) + len(record) > len(log) // 2 and wanted in (None, chunk_of(record)):
            change = altered(record)
            record, done = (record, False) if change is None else (change, True)
        out += struct.pack("<II", len(record), zlib.crc32(record)) + record
    if not done:
        sys.exit(path + ": no record to change")
    with open(path, "wb") as file:
        file.write(out)


if __name__ == "__main__":
    main(sys.argv[1], "--last_chunk" in sys.argv[2:])
