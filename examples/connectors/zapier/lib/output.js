'use strict'

// Zapier wants an id, by which other steps refer to what was found or made.
function withId(resource) {
  return { id: resource.uuid, ...resource }
}

module.exports = { withId }
