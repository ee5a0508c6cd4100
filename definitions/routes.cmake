# SPDX-License-Identifier: Apache-2.0
esk_generate(tools/generate_routes.py definitions/routes.toml
    "server/http/route_table.h;server/http/route_table.c;docs/http-routes.md")
