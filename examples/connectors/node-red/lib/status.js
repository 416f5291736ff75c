'use strict'

// Returns an error in as many words as fit beside a node: of the service's document, what is wrong with the first member is
// worth more than that something is.
function inShort(error) {
  const [fault] = Array.isArray(error.problem?.errors) ? error.problem.errors : []
  const text = fault ? `${fault.pointer ?? fault.parameter ?? ''} ${fault.detail}`.trim() : error.message.split('\n')[0]
  return text.length > 150 ? `${text.slice(0, 149)}…` : text
}

module.exports = { inShort }
