// A page that is opened from a folder may not start a worker. There the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((ready) => {
        frame.onload = () => ready(frame.contentWindow);
      });
      frame.srcdoc = `<script>window.postMessage = (data) => frameElement.answer(data)</script><script src="${url}"></script>`;
      frame.answer = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      const add = () => document.body.append(frame);
      document.body ? add() : addEventListener("DOMContentLoaded", add);
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
