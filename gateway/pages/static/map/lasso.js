// Points inside a line that was drawn around them: even-odd, over the cells of the grid that its box touches.

export function pointsInside(grid, line) {
  if (line.length < 3) return [];
  const xs = line.map(([x]) => x), ys = line.map(([, y]) => y);
  const found = [];
  grid.within([Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)], (point, x, y) => {
    if (isInside(line, x, y)) found.push(point);
  });
  return found;
}

export function isInside(line, x, y) {
  let inside = false;
  for (let i = 0, before = line.length - 1; i < line.length; before = i++) {
    const [ax, ay] = line[i], [bx, by] = line[before];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}
