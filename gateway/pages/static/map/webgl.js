// Draws many points: one WebGL2 context and one program for all panels, whose canvases get its picture. A lost context is
// built again from the arrays that meshes keep.

import { COLOURS, NAMED, SHAPES, STATE } from "./canvas.js";

export class Renderer {
  #meshes = new Set();

  // Returns a renderer, or null where WebGL2 is missing. `onRestored` is called when everything must be drawn again.
  static create(onRestored = () => {}) {
    const canvas = document.createElement("canvas");
    const gl = canvas.getContext("webgl2", { antialias: false, depth: false, premultipliedAlpha: true });
    return gl && new Renderer(canvas, gl, onRestored);
  }

  constructor(canvas, gl, onRestored) {
    this.canvas = canvas;
    this.gl = gl;
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.#prepare();
      for (const mesh of this.#meshes) this.#upload(mesh);
      onRestored();
    });
    this.#prepare();
  }

  // Takes places (x, y of each point) and styles (number of a colour, and state, of each point).
  add(places, styles) {
    const mesh = { places, styles };
    this.#meshes.add(mesh);
    this.#upload(mesh);
    return mesh;
  }

  restyle(mesh, styles) {
    mesh.styles = styles;
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, mesh.styleBuffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, styles, this.gl.DYNAMIC_DRAW);
  }

  remove(mesh) {
    this.#meshes.delete(mesh);
    this.gl.deleteBuffer(mesh.placeBuffer);
    this.gl.deleteBuffer(mesh.styleBuffer);
    this.gl.deleteVertexArray(mesh.array);
  }

  // Draws a mesh as `camera` sees it onto a 2D context of width × height device pixels; `ratio` are device pixels of one.
  draw(mesh, camera, { size, colours, mark, ratio }, target) {
    const { gl, canvas } = this;
    const { width, height } = target.canvas;
    if (canvas.width < width || canvas.height < height) {
      canvas.width = Math.max(canvas.width, width);
      canvas.height = Math.max(canvas.height, height);
    }
    gl.viewport(0, canvas.height - height, width, height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.program);
    gl.uniform2f(this.#at("middle"), camera.x, camera.y);
    gl.uniform2f(this.#at("scale"), (2 * camera.scale) / camera.width, (2 * camera.scale) / camera.height);
    gl.uniform1f(this.#at("size"), size * ratio);
    gl.uniform3fv(this.#at("palette"), uniformOf(colours));
    gl.uniform3fv(this.#at("mark"), rgb(mark));
    gl.bindVertexArray(mesh.array);
    gl.drawArrays(gl.POINTS, 0, mesh.places.length / 2);
    target.clearRect(0, 0, width, height);
    target.drawImage(canvas, 0, 0, width, height, 0, 0, width, height);
  }

  #at(name) {
    return this.uniforms[name];
  }

  #prepare() {
    const { gl } = this;
    this.program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(this.program, shader);
    }
    gl.bindAttribLocation(this.program, 0, "place");
    gl.bindAttribLocation(this.program, 1, "style");
    gl.linkProgram(this.program);
    if (!gl.getProgramParameter(this.program, gl.LINK_STATUS) && !gl.isContextLost()) {
      throw new Error(`the map's program can't be linked: ${gl.getProgramInfoLog(this.program)}`);
    }
    const names = ["middle", "scale", "size", "palette", "mark"];
    this.uniforms = Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(this.program, name)]));
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  #upload(mesh) {
    const { gl } = this;
    mesh.array = gl.createVertexArray();
    gl.bindVertexArray(mesh.array);
    mesh.placeBuffer = this.#attribute(0, mesh.places, gl.FLOAT, gl.STATIC_DRAW);
    mesh.styleBuffer = this.#attribute(1, mesh.styles, gl.UNSIGNED_BYTE, gl.DYNAMIC_DRAW);
  }

  #attribute(location, values, type, usage) {
    const { gl } = this;
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, values, usage);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, 2, type, false, 0, 0);
    return buffer;
  }
}

function uniformOf(colours) {
  const values = new Float32Array(COLOURS * 3);
  colours.slice(0, COLOURS).forEach((colour, at) => values.set(rgb(colour), 3 * at));
  return values;
}

function rgb(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
}

// A point is a shape of its colour; states are drawn around it.
const VERTEX = `#version 300 es
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

const FRAGMENT = `#version 300 es
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
