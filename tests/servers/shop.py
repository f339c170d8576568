"""An MCP server over stdio for the tests: a shop with nine customers and their orders, told as real services tell them."""
import json
import sys

NAMES = "Ada Ben Cleo Dan Eve Finn Gus Hana Ivo".split()
TOOLS = [
    {"name": "list_customers", "description": "Lists all customers", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "list_orders", "description": "Lists the orders of a customer",
     "inputSchema": {"type": "object", "properties": {"customer": {"type": "string", "description": "The customer's id"}}, "required": ["customer"]}},
]


def orders(customer):
    at = int(customer[1:])
    return [{
        "id": f"o{at}{number:02}", "customer": customer, "status": "shipped" if number % 3 else "returned",
        "created_at": f"2026-0{1 + number % 9}-1{at}T09:00:00Z", "currency": "EUR", "total": 10 * at + number,
        "items": [{"sku": f"SKU-{at}{number}", "name": "A thing of some kind", "quantity": 1 + number % 2}],
        "shipping": {"method": "standard", "address": {"street": "1 Some Street", "city": "Somewhere", "country": "DE"}},
    } for number in range(12)]


def call(name, arguments):
    if name == "list_customers":
        return [{"id": f"c{at}", "name": name, "email": f"{name.lower()}@example.com"} for at, name in enumerate(NAMES)]
    return orders(arguments["customer"])


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    params = message.get("params", {})
    if message["method"] == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": TOOLS}
    else:
        result = {"content": [{"type": "text", "text": json.dumps(call(params["name"], params["arguments"]))}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
