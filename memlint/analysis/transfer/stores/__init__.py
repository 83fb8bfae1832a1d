"""What is written where, and does that place outlive the iteration: stores, carries, and what empties them?"""
