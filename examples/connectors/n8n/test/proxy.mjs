// A network in between that loses answers: what is asked for is done, and whoever asked never learns of it.
import { createServer, request } from 'node:http'

export async function startProxy(service) {
  const proxy = new Proxy(service)
  await proxy.start()
  return proxy
}

class Proxy {
  constructor(service) {
    this.service = service
    this.requests = []
    // How many of the next answers to POST requests arrive, and how many of those after them are lost.
    this.pass = 0
    this.lose = 0
  }

  async start() {
    this.server = createServer((incoming, outgoing) => {
      const { method, url, headers } = incoming
      const onward = request(this.service.url + url, { method, headers }, answer => {
        const seen = { method, url, key: headers['idempotency-key'], status: answer.statusCode, replayed: answer.headers['idempotent-replayed'] }
        this.requests.push(seen)
        if (method === 'POST' && this.pass-- <= 0 && this.lose-- > 0) {
          seen.lost = true
          // The service has done it once the whole answer is here.
          answer.resume().on('end', () => outgoing.destroy())
          return
        }
        outgoing.writeHead(answer.statusCode, answer.headers)
        answer.pipe(outgoing)
      })
      onward.on('error', () => outgoing.destroy())
      incoming.pipe(onward)
    })
    await new Promise(resolve => this.server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${this.server.address().port}`
  }

  posts() {
    return this.requests.filter(({ method }) => method === 'POST')
  }

  async stop() {
    this.server.closeAllConnections()
    await new Promise(resolve => this.server.close(resolve))
  }
}
