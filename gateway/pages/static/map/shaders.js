// One program: a point is a shape of its colour; states are drawn around it. Shapes repeat every four colours, so that
// colours that look alike differ all the same.

export const COLOURS = 16;
export const NAMED = 11; // Colours of names; the one behind them is for all others, and always round.
export const SHAPES = 4;

export function shapeOf(number) {
  return number < NAMED ? number % SHAPES : 0;
}

export const STATE = { selected: 1, suggested: 2, dimmed: 4 };

export const VERTEX = `#version 300 es
in vec2 place;
in vec2 style;
uniform vec2 middle, scale;
uniform float size;
uniform vec3 palette[${COLOURS}];
flat out vec3 colour;
flat out int state, shape;
flat out float pixels;
void main() {
  state = int(style.y);
  shape = int(style.x) < ${NAMED} ? int(style.x) % ${SHAPES} : 0;
  colour = palette[int(style.x)];
  bool marked = (state & ${STATE.selected | STATE.suggested}) != 0;
  pixels = size * (marked ? 1.7 : 1.0);
  gl_PointSize = pixels;
  gl_Position = vec4((place - middle) * scale, 0, 1);
}`;

export const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec3 colour;
flat in int state, shape;
flat in float pixels;
uniform vec3 mark;
out vec4 drawn;
float far(vec2 at) {
  if (shape == 1) return max(abs(at.x), abs(at.y)) * 1.15;
  if (shape == 2) return abs(at.x) + abs(at.y);
  if (shape == 3) return max(abs(at.x) * 1.1 + at.y * 0.6, -at.y * 1.2);
  return length(at);
}
void main() {
  vec2 at = gl_PointCoord * 2.0 - 1.0;
  float soft = 2.0 / pixels;
  bool marked = (state & ${STATE.selected | STATE.suggested}) != 0;
  float inner = marked ? 0.59 : 1.0;
  float body = 1.0 - smoothstep(inner - soft, inner, far(at));
  float alpha = body * ((state & ${STATE.dimmed}) != 0 ? 0.12 : 0.85);
  vec3 shown = colour;
  if (marked) {
    float around = length(at);
    bool selected = (state & ${STATE.selected}) != 0;
    float width = selected ? 0.3 : 0.14;
    float ring = smoothstep(1.0 - width - soft, 1.0 - width, around) * (1.0 - smoothstep(1.0 - soft, 1.0, around));
    shown = mix(shown, mark, ring);
    alpha = max(alpha, selected ? ring : ring * 0.6);
  }
  if (alpha < 0.01) discard;
  drawn = vec4(shown * alpha, alpha);
}`;
