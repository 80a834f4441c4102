#!/usr/bin/env python3
"""Reads TensorBoard's event files without TensorBoard: read_events.py DIRECTORY

Checks the framing and both checksums of every record, and prints what is in them, a line each:
  scalar TAG STEP VALUE
  histogram TAG STEP NUM BUCKETS
  text TAG STEP TEXT   (newlines as \\n)
Written from the formats' descriptions alone: TFRecord (length, masked CRC-32C of it, bytes, masked CRC-32C of them) and
the protobuf encoding of tensorflow.Event.
"""

import pathlib
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        (length,) = struct.unpack_from("<Q", data)
        header, body = data[:8], data[12 : 12 + length]
        (header_crc,) = struct.unpack_from("<I", data, 8)
        (body_crc,) = struct.unpack_from("<I", data, 12 + length)
        assert masked_crc32c(header) == header_crc, "the checksum of a length is wrong"
        assert masked_crc32c(body) == body_crc, "the checksum of a record is wrong"
        yield body
        data = data[16 + length :]


def varint(data, position):
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return value, position


def fields(data):
    """The fields of a message as {number: [value, ...]}; bytes for strings and messages."""
    found = {}
    position = 0
    while position < len(data):
        key, position = varint(data, position)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, position = varint(data, position)
        elif kind == 1:
            (value,) = struct.unpack_from("<d", data, position)
            position += 8
        elif kind == 2:
            length, position = varint(data, position)
            value = data[position : position + length]
            assert len(value) == length, "a field is longer than its message"
            position += length
        elif kind == 5:
            (value,) = struct.unpack_from("<f", data, position)
            position += 4
        else:
            raise AssertionError(f"wire type {kind}")
        found.setdefault(number, []).append(value)
    return found


def doubles(message, number):
    return [v for packed in message.get(number, []) for (v,) in struct.iter_unpack("<d", packed)]


def print_value(step, value):
    tag = value[1][0].decode()
    if 2 in value:
        print("scalar", tag, step, value[2][0])
    if 5 in value:
        histogram = fields(value[5][0])
        limits, counts = doubles(histogram, 6), doubles(histogram, 7)
        num = histogram.get(3, [0])[0]
        assert len(limits) == len(counts), f"{tag}: {len(limits)} limits, {len(counts)} counts"
        assert all(a < b for a, b in zip(limits, limits[1:])), f"{tag}: limits do not ascend"
        assert sum(counts) == num, f"{tag}: the buckets hold {sum(counts)}, not {num}"
        print("histogram", tag, step, int(num), len(counts))
    if 8 in value:
        plugin = fields(fields(value[9][0])[1][0])[1][0]
        tensor = fields(value[8][0])
        assert plugin == b"text" and tensor[1] == [7], f"{tag}: a tensor that is no text"
        print("text", tag, step, tensor[8][0].decode().replace("\n", "\\n"))


def main(directory):
    paths = sorted(p for p in pathlib.Path(directory).iterdir() if "tfevents" in p.name)
    assert paths, f"{directory} has no event file"
    for path in paths:
        for number, record in enumerate(records(path.read_bytes())):
            event = fields(record)
            assert event[1][0] > 0, "an event has no time"
            if number == 0:
                assert event[3] == [b"brain.Event:2"], "the first event is not the version"
                continue
            for summary in event.get(5, []):
                for value in fields(summary).get(1, []):
                    print_value(event.get(2, [0])[0], fields(value))


main(sys.argv[1])
