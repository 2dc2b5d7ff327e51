// Where names stand on a map: linked ones near each other, no two labels over one another. The same names in the same
// order always stand in the same places.

const ROUNDS = 220;

/** Return the names with x, y, r (radius), size (of the letters) and label, inside a frame. */
export function placed(names, links, wide, tall) {
  const most = Math.max(1, ...names.map((one) => one.entries));
  const small = wide < 560;
  const spots = names.map((one, n) => {
    const share = Math.sqrt(one.entries / most);
    const size = Math.round((small ? 11 : 11.5) + share * (small ? 2.5 : 4));
    const label = one.name.length > 22 ? `${one.name.slice(0, 21)}…` : one.name;
    const angle = n * 2.399963; // the golden angle: an even spread without chance
    const far = Math.sqrt((n + 0.5) / names.length) * 0.36;
    const r = (small ? 4 : 5) + share * (small ? 8 : 13);
    return { ...one, label, size, r, half: Math.max(r, label.length * size * 0.29) + 3, x: wide * (0.5 + far * Math.cos(angle)), y: tall * (0.5 + far * Math.sin(angle)) };
  });
  const index = new Map(spots.map((spot, n) => [spot.key, n]));
  const degrees = new Map();
  for (const { one, other } of links) for (const key of [one, other]) degrees.set(key, (degrees.get(key) ?? 0) + 1);
  const ease = (link) => 2 / Math.sqrt(degrees.get(link.one) + degrees.get(link.other));
  const springs = links.map((link) => [index.get(link.one), index.get(link.other), link.entries * ease(link)]);
  const strongest = Math.max(1, ...springs.map(([, , strength]) => strength));
  const ideal = Math.sqrt((wide * tall) / Math.max(1, spots.length));
  for (let round = 0; round < ROUNDS; round++) {
    const heat = 1 - round / ROUNDS;
    pull(spots, springs, strongest, ideal, heat);
    push(spots, ideal, heat);
    center(spots, wide, tall, heat);
    part(spots);
    keep(spots, wide, tall);
  }
  fit(spots, wide, tall);
  for (let round = 0; round < 90; round++) {
    part(spots);
    keep(spots, wide, tall);
  }
  for (const spot of spots) {
    spot.x = Math.round(spot.x * 10) / 10;
    spot.y = Math.round(spot.y * 10) / 10;
  }
  return spots;
}

function pull(spots, springs, strongest, ideal, heat) {
  for (const [a, b, entries] of springs) {
    const [one, other] = [spots[a], spots[b]];
    const [dx, dy] = [other.x - one.x, other.y - one.y];
    const far = Math.hypot(dx, dy) || 1;
    const force = ((far - ideal * 0.9) / far) * 0.05 * heat * (0.35 + (0.65 * entries) / strongest);
    one.x += dx * force;
    one.y += dy * force;
    other.x -= dx * force;
    other.y -= dy * force;
  }
}

function push(spots, ideal, heat) {
  for (let a = 0; a < spots.length; a++)
    for (let b = a + 1; b < spots.length; b++) {
      const [one, other] = [spots[a], spots[b]];
      const [dx, dy] = [other.x - one.x || 0.1, other.y - one.y || 0.1];
      const square = dx * dx + dy * dy;
      const force = Math.min(0.6, ((ideal * ideal) / square) * 0.02) * heat;
      one.x -= dx * force;
      one.y -= dy * force;
      other.x += dx * force;
      other.y += dy * force;
    }
}

/** Stretch what is drawn over the whole frame; the few names farthest out stay at its edge. */
function fit(spots, wide, tall) {
  if (spots.length < 3) return;
  const stretch = (axis, size, margin) => {
    const sorted = spots.map((spot) => spot[axis]).sort((a, b) => a - b);
    const [low, high] = [sorted[Math.floor(sorted.length * 0.03)], sorted[Math.ceil(sorted.length * 0.97) - 1]];
    if (high - low < 1) return;
    for (const spot of spots) spot[axis] = margin + ((spot[axis] - low) / (high - low)) * (size - 2 * margin);
  };
  stretch("x", wide, Math.min(90, wide * 0.16));
  stretch("y", tall, 44);
  keep(spots, wide, tall);
}

function center(spots, wide, tall, heat) {
  for (const spot of spots) {
    spot.x += (wide / 2 - spot.x) * 0.03 * heat;
    spot.y += (tall / 2 - spot.y) * 0.04 * heat;
  }
}

/** Move apart what overlaps: a node with its label is a box. */
function part(spots) {
  for (let a = 0; a < spots.length; a++)
    for (let b = a + 1; b < spots.length; b++) {
      const [one, other] = [spots[a], spots[b]];
      const across = one.half + other.half - Math.abs(one.x - other.x);
      const [oneTop, oneEnd] = [one.y - one.r - 2, one.y + one.r + one.size * 1.35];
      const [otherTop, otherEnd] = [other.y - other.r - 2, other.y + other.r + other.size * 1.35];
      const down = Math.min(oneEnd, otherEnd) - Math.max(oneTop, otherTop);
      if (across <= 0 || down <= 0) continue;
      if (across < down * 1.6) {
        const by = (across / 2) * (one.x <= other.x ? 1 : -1);
        one.x -= by;
        other.x += by;
      } else {
        const by = (down / 2) * (one.y <= other.y ? 1 : -1);
        one.y -= by;
        other.y += by;
      }
    }
}

function keep(spots, wide, tall) {
  for (const spot of spots) {
    spot.x = Math.min(wide - spot.half - 4, Math.max(spot.half + 4, spot.x));
    spot.y = Math.min(tall - spot.r - spot.size * 1.5 - 4, Math.max(spot.r + 6, spot.y));
  }
}
