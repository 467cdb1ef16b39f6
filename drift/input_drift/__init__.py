"""What users ask, seen by the vectors of their questions: does it differ from what they asked before, and in what?"""
