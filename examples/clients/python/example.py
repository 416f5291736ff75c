"""Creates a campaign, submits responses with a file, and lists them: python3 example.py URL KEY"""
import sys

from formsvc import Client, Problem

api = Client(*sys.argv[1:])
campaign = api.request("POST", "/v1/campaigns", {
    "title": "Travel grants",
    "modules": [{"name": "motivation", "type": "longtext", "required": True}, {"name": "passport", "type": "file"}],
})
responses = f"/v1/campaigns/{campaign['uuid']}/responses"

try:
    api.request("POST", responses, {"responses": {}})
except Problem as problem:
    for error in problem.errors:
        print("refused:", error["pointer"], error["detail"])

for motivation in "To learn", "To teach", "To see":
    answers = {"motivation": {"value": [motivation]}}
    response = api.request("POST", responses, {"user": {"email": "ada@example.com"}, "responses": answers})
    api.upload(f"{responses}/{response['uuid']}/files", __file__, module="passport")

for response in api.pages(responses, limit=2):
    print("answer:", *response["responses"]["motivation"]["value"])
