// Makes an animated WebP of single pictures: their compressed data, put into the frames of one file. As the container is
// written down: https://developers.google.com/speed/webp/docs/riff_container

export interface Shot {
  picture: Buffer;
  /** How long it is shown. */
  ms: number;
}

/** The film, shown for ever; all pictures have this size. */
export function film(shots: Shot[], { width, height }: { width: number; height: number }): Buffer {
  const canvas = [...number(2, 1), ...number(0, 3), ...number(width - 1, 3), ...number(height - 1, 3)];
  const frames = shots.map(({ picture, ms }) => {
    // No offset; each replaces the whole picture before it.
    const head = [...number(0, 3), ...number(0, 3), ...number(width - 1, 3), ...number(height - 1, 3), ...number(ms, 3), 2];
    return chunk('ANMF', Buffer.concat([Buffer.from(head), imageOf(picture)]));
  });
  const body = Buffer.concat([
    Buffer.from('WEBP'),
    chunk('VP8X', Buffer.from(canvas)),
    chunk('ANIM', Buffer.from([...number(0xffffffff, 4), ...number(0, 2)])),
    ...frames,
  ]);
  return Buffer.concat([Buffer.from('RIFF'), Buffer.from(number(body.length, 4)), body]);
}

/** The chunk of a single picture that holds its pixels. */
function imageOf(picture: Buffer): Buffer {
  for (let at = 12; at + 8 <= picture.length; ) {
    const kind = picture.toString('latin1', at, at + 4);
    const length = picture.readUInt32LE(at + 4);
    const end = at + 8 + length + (length % 2);
    if (kind === 'VP8 ' || kind === 'VP8L') return picture.subarray(at, end);
    at = end;
  }
  throw new Error('a picture without pixels');
}

function chunk(kind: string, data: Buffer): Buffer {
  const padding = Buffer.alloc(data.length % 2);
  return Buffer.concat([Buffer.from(kind), Buffer.from(number(data.length, 4)), data, padding]);
}

/** Little-endian bytes. */
function number(value: number, bytes: number): number[] {
  return Array.from({ length: bytes }, (_, at) => Math.floor(value / 256 ** at) % 256);
}
