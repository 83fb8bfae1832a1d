"""In which order is a project analysed: first summaries, facts of callers, second summaries, judging?"""
