"""Writes the generated pages of docs again: `make golden`. Read the diff before you commit it."""

from __future__ import annotations

from docs.scripts import (
    make_channel_parameters,
    make_profiles_page,
    make_readme_numbers,
    make_scenario_keys,
    make_tables_page,
    make_variants_page,
)

make_channel_parameters.main()
make_profiles_page.main()
make_scenario_keys.main()
make_tables_page.main()
make_variants_page.main()
make_readme_numbers.main()
