// Draws points: one WebGL2 context and one program for all panels, whose canvases get its picture. A lost context is
// built again from the arrays that meshes keep.

import { FRAGMENT, VERTEX } from "./shaders.js";

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
  draw(mesh, camera, { size, palette, mark, ratio }, target) {
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
    gl.uniform3fv(this.#at("palette"), palette);
    gl.uniform3fv(this.#at("mark"), mark);
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
