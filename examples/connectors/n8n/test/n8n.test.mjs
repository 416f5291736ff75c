// All tests of the n8n nodes. They are one file because they share an n8n, and on Postgres a database whose secrets are
// encrypted with keys that only this process knows.
import './duplicates.mjs'
import './actions.mjs'
import './trigger.mjs'
import './outages.mjs'
import './poll.mjs'
import './defaults.mjs'
