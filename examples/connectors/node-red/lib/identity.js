'use strict'

// Returns what names a node also in the next life of Node-RED. Node-RED 4 makes the ids of nodes in a subflow of the ids of the
// instance and of the node in it; Node-RED 3 makes new ones at each start.
function lastingId(node) {
  return node._alias ? `${node.z}-${node._alias}` : node.id
}

module.exports = { lastingId }
