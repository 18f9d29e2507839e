
def pad_sequence(sequences: List[Tensor], batch_first: bool=False, padding_value: float=0., padding_side: str='right') -> Tensor:
    if len(sequences) == 0:
        raise RuntimeError('received an empty list of sequences')
    if padding_side != 'left' and padding_side != 'right':
        raise RuntimeError("Expected padding_side to be one of left or right, but got {}.".format(padding_side))
    longest = 0
    for s in sequences:
        longest = max(longest, s.size(0))
    result = torch.full([len(sequences), longest] + sequences[0].size()[1:], padding_value, dtype=sequences[0].dtype)
    for i in range(len(sequences)):
        n = sequences[i].size(0)
        if padding_side == 'left':
            result.select(0, i).narrow(0, longest - n, n).copy_(sequences[i])
        else:
            result.select(0, i).narrow(0, 0, n).copy_(sequences[i])
    if batch_first:
        return result
    return result.transpose(0, 1).contiguous()
