/* The search runs in a worker, and a page opened from a file may not start one: there it runs in a hidden frame.
   The theme's own stand-in would come from another host. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      window.addEventListener("message", event => {
        if (event.source === this.frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }))
      })
      const inside = this.frame.contentDocument
      inside.open()
      inside.write(`<!doctype html><script>
        var postMessage = function (data) { parent.postMessage(data, "*") }
        var importScripts = function () {
          return Promise.all(Array.from(arguments, function (url) {
            return new Promise(function (loaded) {
              var script = document.createElement("script")
              script.src = url
              script.onload = loaded
              document.head.appendChild(script)
            })
          }))
        }
      </script><script src="${new URL(url, document.baseURI)}"></script>`)
      inside.close()
      this.ready = new Promise(loaded => this.frame.contentWindow.addEventListener("load", loaded))
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
