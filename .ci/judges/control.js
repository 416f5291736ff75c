// Reads an OpenAPI document and writes it with a header and a member that every answer must have, and none has, so
// that a judge who doesn't miss them isn't judging.
const document = JSON.parse(require('fs').readFileSync(0))
const found = (reference) => reference.split('/').slice(1).reduce((at, name) => at[name.replaceAll('~1', '/').replaceAll('~0', '~')], document)

for (const item of Object.values(document.paths)) {
  for (const operation of Object.values(item).filter((value) => value.operationId)) {
    for (const [status, answer] of Object.entries(operation.responses)) {
      const wanting = structuredClone(answer.$ref ? found(answer.$ref) : answer)
      wanting.headers = { ...wanting.headers, neverSent: { required: true, schema: { type: 'string' } } }
      for (const [mediaType, content] of Object.entries(wanting.content ?? {})) {
        if (mediaType.endsWith('json') && mediaType !== 'application/x-ndjson') {
          content.schema = { allOf: [content.schema, { type: 'object', required: ['neverSent'] }] }
        }
      }
      operation.responses[status] = wanting
    }
  }
}
process.stdout.write(JSON.stringify(document))
