"""Is what was observed a finding: reasons against it by name, its confidence, its severity's evidence?"""
