import type { IExecuteFunctions, INodeExecutionData, INodeType, INodeTypeDescription } from 'n8n-workflow'
import { NodeApiError, NodeConnectionTypes, NodeOperationError } from 'n8n-workflow'

import { getModules, searchCampaigns } from '../shared/campaigns'
import { credential } from '../shared/transport'
import { operations } from './operations'
import { properties } from './properties'

export class Formsvc implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Forms Campaign Service',
    name: 'formsvc',
    icon: { light: 'file:../../icons/formsvc.svg', dark: 'file:../../icons/formsvc.dark.svg' },
    group: ['transform'],
    version: 1,
    subtitle: '={{$parameter["operation"] + ": " + $parameter["resource"]}}',
    description: 'Create and read responses, change their status, comment on them, and exchange files',
    defaults: { name: 'Forms Campaign Service' },
    inputs: [NodeConnectionTypes.Main],
    outputs: [NodeConnectionTypes.Main],
    usableAsTool: true,
    credentials: [{ name: credential, required: true }],
    properties,
  }

  methods = {
    listSearch: { searchCampaigns },
    resourceMapping: { getModules },
  }

  async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
    const output: INodeExecutionData[] = []
    for (let index = 0; index < this.getInputData().length; index++) {
      try {
        const resource = this.getNodeParameter('resource', index) as string
        const operation = this.getNodeParameter('operation', index) as string
        const items = await operations[`${resource}.${operation}`](this, index)
        output.push(...items.map((item) => ({ ...item, pairedItem: { item: index } })))
      } catch (error) {
        if (!this.continueOnFail()) throw asNodeError(this, error as Error, index)
        output.push({ json: failureOf(error as Error), pairedItem: { item: index } })
      }
    }
    return [output]
  }
}

function asNodeError(context: IExecuteFunctions, error: Error, index: number): Error {
  if (error instanceof NodeApiError) return error
  return new NodeOperationError(context.getNode(), error, { itemIndex: index })
}

function failureOf(error: Error) {
  const { message, description, httpCode } = error as NodeApiError
  return { error: message, description: description ?? null, httpCode: httpCode ?? null }
}
