'use strict'

const { version: platformVersion } = require('zapier-platform-core')
const { version } = require('./package.json')
const authentication = require('./lib/authentication')
const { downloadFile } = require('./lib/files')
const { EVENTS } = require('./lib/events')
const { eventTrigger } = require('./lib/trigger')

const byKey = list => Object.fromEntries(list.map(item => [item.key, item]))

module.exports = {
  version,
  platformVersion,
  authentication,
  // lib/http.js turns every refusal into an error of its own, a 429 included.
  flags: { throwForThrottlingEarly: false },
  hydrators: { downloadFile },
  triggers: byKey([...EVENTS.map(eventTrigger), require('./triggers/campaigns')]),
  creates: byKey([
    require('./creates/response'),
    require('./creates/status'),
    require('./creates/comment'),
    require('./creates/file'),
  ]),
  searches: byKey([require('./searches/response'), require('./searches/campaign')]),
}
