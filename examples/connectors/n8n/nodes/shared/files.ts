import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow'

import { idempotencyKey } from './idempotency'
import { json, request } from './transport'

// Uploads the file of a binary property. Where n8n keeps it outside of memory it is sent from there as it is read.
export async function upload(
  context: IExecuteFunctions,
  path: string,
  index: number,
): Promise<IDataObject> {
  const property = context.getNodeParameter('binaryProperty', index) as string
  const binary = context.helpers.assertBinaryData(index, property)
  const { module, name = binary.fileName, idempotencyKey: key } = context.getNodeParameter(
    'uploadOptions', index, {},
  ) as Record<string, string | undefined>
  return await json(context, 'POST', path, {
    query: module ? { module } : {},
    headers: {
      'Content-Type': binary.mimeType || 'application/octet-stream',
      'Content-Disposition': dispositionOf(name || 'file'),
      'Idempotency-Key': idempotencyKey(context, index, key),
    },
    makeBody: async () =>
      binary.id
        ? await context.helpers.getBinaryStream(binary.id)
        : await context.helpers.getBinaryDataBuffer(index, property),
    itemIndex: index,
  })
}

// Downloads a file into a binary property. The bytes are not collected in memory unless n8n keeps them there.
export async function download(context: IExecuteFunctions, index: number): Promise<INodeExecutionData> {
  const uuid = context.getNodeParameter('fileUuid', index) as string
  const property = context.getNodeParameter('binaryProperty', index) as string
  const { body, headers } = await request(context, 'GET', `/v1/files/${encodeURIComponent(uuid)}`, {
    stream: true,
    itemIndex: index,
  })
  const name = nameOf(String(headers['content-disposition'] ?? '')) ?? uuid
  const type = String(headers['content-type'] ?? 'application/octet-stream')
  const binary = await context.helpers.prepareBinaryData(body as never, name, type)
  return {
    json: { uuid, name, contentType: type, size: Number(headers['content-length'] ?? 0) },
    binary: { [property]: binary },
  }
}

// Writes a name as RFC 6266 and RFC 8187 have it, whatever characters it is made of.
export function dispositionOf(name: string): string {
  const encoded = encodeURIComponent(Buffer.from(name).toString()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename*=UTF-8''${encoded}`
}

// Reads the name that dispositionOf, or a service, wrote.
export function nameOf(disposition: string): string | undefined {
  const encoded = /filename\*\s*=\s*UTF-8'[^']*'([^;\s]+)/i.exec(disposition)?.[1]
  if (encoded) {
    try {
      return decodeURIComponent(encoded)
    } catch {
      // Badly encoded; there may be a plain name.
    }
  }
  const plain = /filename\s*=\s*("((?:[^"\\]|\\.)*)"|[^;\s]+)/i.exec(disposition)
  return plain ? (plain[2]?.replace(/\\(.)/g, '$1') ?? plain[1]) : undefined
}
